"""How the page looks: one column, light and dark, wide and narrow."""

STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de;
  --good: #116329; --bad: #b3161b; --blue: #0550ae; --orange: #9a4a00; --tile: #f6f8fa }
@media (prefers-color-scheme: dark) { :root { --page: #0d1117; --ink: #e6edf3; --soft: #9da7b3;
  --line: #30363d; --good: #56d364; --bad: #ff7b72; --blue: #79c0ff; --orange: #ffa657;
  --tile: #161b22 } }
* { box-sizing: border-box }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto;
  padding: 0 1rem; background: var(--page); color: var(--ink) }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2.2rem }
.good { color: var(--good) } .bad { color: var(--bad) } small { color: var(--soft) }
.tiles { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1rem 0 }
.tiles div { background: var(--tile); border: 1px solid var(--line); border-radius: .5rem;
  padding: .6rem 1rem } .tiles b { display: block; font-size: 1.4rem }
.wide { overflow-x: auto } table { border-collapse: collapse; width: 100%; margin: .6rem 0 }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid var(--line);
  vertical-align: top } .facts th { width: 14rem; font-weight: 600 }
thead th { font-size: .85rem; color: var(--soft); font-weight: 600; white-space: nowrap }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
code, td, .witness { overflow-wrap: anywhere }
.rows td { border-bottom: 0; padding-bottom: 0 } .rows strong { font-weight: 600 }
.rows td:first-child { min-width: 14rem } .rows td.number, .rows td[data-label=verdict],
.rows td[data-label=interval] { overflow-wrap: normal; white-space: nowrap }
.more td { border-bottom: 1px solid var(--line) !important; padding: 0 .6rem .35rem !important }
summary { cursor: pointer; color: var(--soft); font-size: .85rem }
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
