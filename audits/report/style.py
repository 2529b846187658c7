"""The style of the pages: one column, light and dark, wide and narrow."""

from accountant.reports.html_document import read_asset

# the style of all pages of the project, then that of this one
STYLE = (
    read_asset("base.css")
    + """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto;
  padding: 0 1rem; background: var(--page); color: var(--ink) }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2.2rem }
.tiles { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1rem 0 }
.tiles div { background: var(--tile); border: 1px solid var(--line); border-radius: .5rem;
  padding: .6rem 1rem } .tiles b { display: block; font-size: 1.4rem }
.facts th { width: 14rem; font-weight: 600 }
td, .witness { overflow-wrap: anywhere }
.rows td { border-bottom: 0; padding-bottom: 0 } .rows strong { font-weight: 600 }
.rows td:first-child { min-width: 14rem } .rows td.number, .rows td[data-label=verdict],
.rows td[data-label=interval] { overflow-wrap: normal; white-space: nowrap }
.more td { border-bottom: 1px solid var(--line) !important; padding: 0 .6rem .35rem !important }
.witness { padding: .2rem .8rem .6rem; border-left: 3px solid var(--line); margin: .3rem 0 }
.witness p { margin: .3rem 0 } figure { margin: .8rem 0; max-width: 44rem }
svg { font-size: 12px } figure svg { width: 100%; height: auto; display: block }
svg text { fill: var(--ink) } svg line { stroke: var(--line) }
polyline { fill: none; stroke-width: 2 } .band { fill: var(--blue); opacity: .2 }
polyline.mean { stroke: var(--blue) } polyline.exact { stroke: var(--ink); stroke-dasharray: 2 4 }
polyline.claimed { stroke: var(--orange); stroke-dasharray: 7 4 }
svg rect.good, svg path.good { fill: var(--good); opacity: .55 }
svg rect.bad, svg path.bad { fill: var(--bad); opacity: .75 }
svg circle { fill: var(--ink) } svg path.claim { stroke: var(--orange); stroke-width: 2.5 }
svg.key { vertical-align: middle } svg.interval { display: block; margin: .1rem 0 }
@media (max-width: 52rem) {
  .rows thead { display: none } .rows, .rows tbody, .rows tr, .rows td { display: block }
  .rows td { padding: .1rem .2rem; text-align: left; min-width: 0 }
  .rows td[data-label] { display: flex; gap: .6rem; justify-content: space-between }
  .rows td[data-label]::before { content: attr(data-label); color: var(--soft); flex: none }
  .rows td[data-label=subject]::before { content: none }
  .rows td[data-label=subject] { padding-top: .7rem } .facts th { width: auto }
  figure svg { font-size: 17px } .rows svg.interval { font-size: 12px }
  .more td { padding: 0 .2rem .5rem !important }
}
@media print { details > * { display: block } }
"""
)
