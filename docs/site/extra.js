// What Material's scripts leave out for screen readers and keyboards: names of the search and of copy buttons, and the
// focus of tables that scroll.
function complete() {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  document.querySelectorAll(".md-code__nav").forEach((one, index) => one.setAttribute("aria-label", `Code ${index + 1}`));
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap"))
    if (table.scrollWidth > table.clientWidth) table.tabIndex = 0;
}
new MutationObserver(complete).observe(document.body, { childList: true, subtree: true });
complete();
