// tables that are wider than the page can be moved by the keyboard too
addEventListener("load", () => setTimeout(() => {
  for (const wrap of document.querySelectorAll(".md-typeset__scrollwrap")) {
    wrap.tabIndex = 0
    wrap.setAttribute("role", "group")
    wrap.setAttribute("aria-label", "table")
  }
}))
