"""Compile regular expressions to the smallest automaton that finds their longest match."""

from __future__ import annotations

from characters import ATOM, GROUPS, NATOMS


# The syntax: literals, \x escapes, [sets] and [^sets], ( | ) * + ? {m,n}, {NAME} for a named part, <name> for a group
# of characters. A rule that starts with (?i) matches ASCII letters in either case.
class Parser:
    def __init__(self, text, names):
        self.fold = text.startswith("(?i)")
        self.t, self.i, self.names = text[4:] if self.fold else text, 0, names

    def peek(self):
        return self.t[self.i] if self.i < len(self.t) else ""

    def take(self):
        self.i += 1
        return self.t[self.i - 1]

    def parse(self):
        node = self.alternatives()
        assert self.i == len(self.t), (self.t, self.i)
        return node

    def alternatives(self):
        parts = [self.sequence()]
        while self.peek() == "|":
            self.take()
            parts.append(self.sequence())
        return parts[0] if len(parts) == 1 else ("or", parts)

    def sequence(self):
        parts = []
        while self.peek() and self.peek() not in "|)":
            if self.t.startswith("(?i)", self.i):  # applies to the end of the group
                self.i, self.fold = self.i + 4, True
                continue
            parts.append(self.repeat())
        return ("cat", parts)

    def repeat(self):
        node = self.item()
        while True:
            c = self.peek()
            if c and c in "*+?":
                self.take()
                node = ("rep", node, 1 if c == "+" else 0, 1 if c == "?" else None)
            elif c == "{" and self.t[self.i + 1].isdigit():
                end = self.t.index("}", self.i)
                low, _, high = self.t[self.i + 1 : end].partition(",")
                node = ("rep", node, int(low), int(high) if high else None if _ else int(low))
                self.i = end + 1
            else:
                return node

    def item(self):
        c = self.take()
        if c == "(":
            fold = self.fold
            node = self.alternatives()
            self.fold = fold
            assert self.take() == ")"
            return node
        if c == "[":
            return ("set", self.charset())
        if c == "{" and self.name():
            name = self.name()
            self.i += len(name) + 1
            fold = "(?i)" if self.fold and not self.names[name].startswith("(?i)") else ""
            return Parser(fold + self.names[name], self.names).parse()
        return ("set", self.folded(self.atom(c)))

    def atom(self, c):
        """The atom of a character, an escape or a <group>."""
        if c == "\\":
            c = self.take()
            return ATOM["\t" if c == "t" else c]
        if c == "<":
            end = self.t.find(">", self.i)
            if self.t[self.i : end] in GROUPS:
                name, self.i = self.t[self.i : end], end + 1
                return ATOM[name]
        return ATOM[c]

    def name(self):
        """The NAME of a {NAME} whose brace has just been read, or an empty string."""
        name = self.t[self.i : self.t.find("}", self.i)]
        return name if name in self.names else ""

    def folded(self, atom):
        s = {atom}
        if self.fold and atom < 128 and chr(atom).isalpha():
            s |= {ord(chr(atom).lower()), ord(chr(atom).upper())}
        return frozenset(s)

    def charset(self):
        negate = self.peek() == "^"
        if negate:
            self.take()
        s = set()
        while self.peek() != "]":
            c = self.take()
            if c == "{" and self.name():
                node = Parser(self.names[self.name()], self.names).parse()
                self.i = self.t.index("}", self.i) + 1
                while node[0] == "cat":
                    node = node[1][0]
                s |= node[1]
                continue
            a = self.atom(c)
            if self.peek() == "-" and self.t[self.i + 1] != "]":
                self.take()
                b = self.atom(self.take())
                s |= set(range(a, b + 1))
            else:
                s |= self.folded(a)
        self.take()
        if negate:
            s = set(range(NATOMS)) - s - {ATOM["eol"]}
        return frozenset(s)


# ---------------------------------------------------------------- automata
class Nfa:
    def __init__(self):
        self.eps, self.step, self.accept = [], [], {}

    def state(self):
        self.eps.append([])
        self.step.append([])
        return len(self.eps) - 1

    def build(self, node, start):
        """Add the node's paths from start. Returns the state they end in."""
        kind = node[0]
        if kind == "set":
            end = self.state()
            self.step[start].append((node[1], end))
            return end
        if kind == "cat":
            for part in node[1]:
                start = self.build(part, start)
            return start
        if kind == "or":
            end = self.state()
            for part in node[1]:
                first = self.state()
                self.eps[start].append(first)
                self.eps[self.build(part, first)].append(end)
            return end
        _, inner, low, high = node
        for _ in range(low):
            start = self.build(inner, start)
        if high is None:
            loop = self.state()
            self.eps[start].append(loop)
            self.eps[self.build(inner, loop)].append(loop)
            return loop
        end = self.state()
        self.eps[start].append(end)
        for _ in range(high - low):
            first = self.state()
            self.eps[start].append(first)
            start = self.build(inner, first)
            self.eps[start].append(end)
        return end


def closure(nfa, states):
    seen, todo = set(states), list(states)
    while todo:
        for t in nfa.eps[todo.pop()]:
            if t not in seen:
                seen.add(t)
                todo.append(t)
    return frozenset(seen)


def same_columns(nfa):
    """Split the atoms into classes that no rule distinguishes."""
    sets = sorted({s for steps in nfa.step for s, _ in steps}, key=sorted)
    key = {a: tuple(i for i, s in enumerate(sets) if a in s) for a in range(NATOMS)}
    order = []
    for a in range(NATOMS):
        if key[a] not in order:
            order.append(key[a])
    return [order.index(key[a]) for a in range(NATOMS)], len(order)


def determinise(nfa, start, cls, ncls):
    member = [cls.index(k) for k in range(ncls)]
    first = closure(nfa, [start])
    index, todo, rows, accept = {first: 1}, [first], [[0] * ncls], [0]
    cache = {}
    while todo:
        now = todo.pop(0)
        moves = [m for s in sorted(now) for m in nfa.step[s]]
        row = []
        for k in range(ncls):
            a = member[k]
            target = frozenset(t for s, t in moves if a in s)
            if not target:
                row.append(0)
                continue
            if target not in cache:
                cache[target] = closure(nfa, target)
            full = cache[target]
            if full not in index:
                index[full] = len(index) + 1
                todo.append(full)
            row.append(index[full])
        rows.append(row)
        accept.append(min((nfa.accept[s] for s in now if s in nfa.accept), default=0))
    return rows, accept


def minimise(rows, accept):
    """Merge equivalent states (repeated splitting until nothing changes)."""
    block = list(accept)
    count = len(set(block))
    while True:
        ids, new = {}, []
        for s, row in enumerate(rows):
            key = (block[s], tuple(block[t] for t in row))
            new.append(ids.setdefault(key, len(ids)))
        if len(ids) == count:
            break
        block, count = new, len(ids)
    # number in breadth-first order: 0 = dead, 1 = start, the busiest rows first
    order, todo = {block[0]: 0, block[1]: 1}, [1]
    rep = {block[0]: 0, block[1]: 1}
    while todo:
        s = todo.pop(0)
        for t in rows[s]:
            if block[t] not in order:
                order[block[t]] = len(order)
                rep[block[t]] = t
                todo.append(t)
    small, acc = [None] * len(order), [0] * len(order)
    for b, n in order.items():
        small[n] = [order[block[t]] for t in rows[rep[b]]]
        acc[n] = accept[rep[b]]
    return small, acc


def accepting_last(rows, accept):
    """Renumber the states so that one comparison tells whether a state ends a token."""
    order = sorted(range(len(rows)), key=lambda s: (accept[s] != 0, s))
    new = {s: n for n, s in enumerate(order)}
    return [[new[t] for t in rows[s]] for s in order], [accept[s] for s in order]


def merge_columns(rows, cls, ncls):
    cols, remap = {}, []
    for k in range(ncls):
        remap.append(cols.setdefault(tuple(r[k] for r in rows), len(cols)))
    keep = [remap.index(i) for i in range(len(cols))]
    return [[r[k] for k in keep] for r in rows], [remap[c] for c in cls], len(cols)
