// Conversions between Python and the scanners.
#include "scanned_block.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string_view.h>

#include <stdexcept>

namespace nb = nanobind;
using mmeval::Role;

namespace {

Role role_named(std::string_view name) {
    constexpr std::pair<std::string_view, Role> kRoles[] = {
        {"text", Role::text},   {"answer", Role::answer}, {"reference", Role::reference},
        {"name", Role::name},   {"media", Role::media},   {"references", Role::references},
        {"other", Role::other}, {"choices", Role::choices}, {"metadata", Role::metadata},
        {"reference_item", Role::reference_item},
    };
    for (const auto& [known, role] : kRoles)
        if (known == name) return role;
    throw std::invalid_argument("no role is named " + std::string(name));
}

// An array that owns the items of a vector or string.
template <typename T, typename Items>
nb::object owned(Items&& items) {
    auto* const kept = new std::decay_t<Items>(std::move(items));
    nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<std::decay_t<Items>*>(pointer); });
    return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(reinterpret_cast<T*>(kept->data()), {kept->size()}, owner));
}

nb::object validity_of(mmeval::TextColumn& column) {
    return column.nulls == 0 ? nb::object(nb::none()) : owned<std::uint8_t>(std::move(column.validity));
}

nb::list others_of(const mmeval::ScannedBlock& block) {
    nb::list others;
    for (const auto& other : block.others) others.append(nb::make_tuple(other.line, other.begin, other.end));
    return others;
}

nb::list shapes_of(const mmeval::ScannedBlock& block) {
    nb::list names, shapes;
    for (const std::string_view name : block.columns) names.append(nb::cast(name));
    for (const auto& shape : block.shapes) {
        nb::list columns;
        for (const std::uint32_t column : shape.columns) columns.append(names[column]);
        shapes.append(nb::make_tuple(shape.first_row, nb::tuple(columns), shape.kinds));
    }
    return shapes;
}

}  // namespace

mmeval::Routes routes_of(const RouteList& route, std::uint32_t fields, std::uint32_t id, std::uint32_t metadata) {
    if (id >= fields || metadata >= fields) throw std::invalid_argument("a field number is too large");
    mmeval::Routes routes{{}, fields, id, metadata};
    for (const auto& [column, field, role] : route) {
        if (field >= fields) throw std::invalid_argument("a field number is too large");
        routes.columns.emplace(column, mmeval::RoutedColumn{field, role_named(role)});
    }
    return routes;
}

nb::tuple python_block(mmeval::ScannedBlock& block) {
    nb::list others = others_of(block), shapes = shapes_of(block);
    nb::dict texts;
    for (std::size_t field = 0; field < block.texts.size(); ++field) {
        mmeval::TextColumn& column = block.texts[field];
        if (column.rows() > 0)
            texts[nb::int_(field)] = nb::make_tuple(validity_of(column), owned<std::int32_t>(std::move(column.offsets)),
                                                    owned<std::uint8_t>(std::move(column.bytes)));
    }
    nb::object lists = nb::none();
    if (block.lists.rows() > 0)
        lists = nb::make_tuple(validity_of(block.lists), owned<std::int32_t>(std::move(block.lists.offsets)),
                               owned<std::int32_t>(std::move(block.list_items.offsets)),
                               owned<std::uint8_t>(std::move(block.list_items.bytes)));
    nb::object media = block.media.empty() ? nb::object(nb::none()) : owned<std::int64_t>(std::move(block.media));
    return nb::make_tuple(owned<std::int32_t>(std::move(block.lines)), owned<std::int32_t>(std::move(block.begins)),
                          owned<std::int32_t>(std::move(block.shape_of)),
                          owned<std::int64_t>(std::move(block.id_hashes)), media, others, shapes, texts, lists);
}
