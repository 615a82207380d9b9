/* The menu of versions, and a search that also works from a disk. `versions.js`, beside the versions, sets siteVersions. */
if (location.protocol === "file:" && location.pathname.endsWith("/search.html")) {
  // The search requests pages for their excerpts, which browsers refuse here. `search-texts.js` has the texts.
  const loaded = new Promise((resolve) => {
    const script = document.createElement("script");
    script.src = "search-texts.js";
    script.addEventListener("load", resolve);
    document.head.append(script);
  });
  window.fetch = async (address) => {
    await loaded;
    Search.htmlToText = (text) => text;
    return { text: () => window.siteTexts[address.replace(/^\.?\//, "")] };
  };
}

document.addEventListener("DOMContentLoaded", () => {
  const menu = document.getElementById("version-menu");
  const versions = window.siteVersions || [];
  if (!menu || !versions.length) return;
  const root = menu.dataset.root;
  const address = (version) => {
    const pages = version.pages || [];
    const page = pages.includes(menu.dataset.page) ? menu.dataset.page : "index.html";
    return `${root}../${version.name}/${page}`;
  };
  menu.replaceChildren(
    ...versions.map((version) => {
      const option = document.createElement("option");
      option.textContent = version.name;
      option.value = address(version);
      option.selected = version.name === menu.dataset.version;
      return option;
    }),
  );
  menu.addEventListener("change", () => {
    location.href = menu.value;
  });
  const newest = versions.find((version) => version.released);
  const link = document.querySelector("[data-newest]");
  if (newest && link) {
    link.href = address(newest);
    link.hidden = false;
  }
});
