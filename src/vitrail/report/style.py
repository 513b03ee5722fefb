"""The style sheet of a report, for light and dark, wide and narrow."""

STYLE = """
:root { color-scheme: light dark; --page: #f6f6f3; --card: #fff; --ink: #1c1e24; --muted: #6a6f7b; --grid: #e6e6e1;
  --first: #2563eb; --second: #dd5b1d; --third: #12875a; --fourth: #8b4fc9; --fifth: #c0318f; --sixth: #0e8ca0;
  --bad: #c2371c; --warm: #fff6e5; --warm-edge: #e8a33d; --track: #ecece7; }
@media (prefers-color-scheme: dark) {
  :root { --page: #15171c; --card: #1d2027; --ink: #e7e8ec; --muted: #989daa; --grid: #2d313b;
    --first: #6d9bff; --second: #ff9257; --third: #4cc38f; --fourth: #be93f5; --fifth: #f27cc8; --sixth: #4cc7da;
    --bad: #ff8266; --warm: #2c2618; --warm-edge: #b98a2f; --track: #2a2e38; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, -apple-system, "Segoe UI",
  Roboto, "Liberation Sans", sans-serif; font-variant-numeric: tabular-nums; -webkit-text-size-adjust: 100%; }
body::before { content: ""; display: block; height: 5px; background: linear-gradient(90deg, #2563eb 0 16%,
  #8b4fc9 0 30%, #c2371c 0 47%, #e8a33d 0 58%, #12875a 0 78%, #14a3b8 0); }
main { max-width: 1120px; margin: 0 auto; padding: 1.6rem 1.2rem 3rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0; overflow-wrap: anywhere; letter-spacing: -.015em; }
h2 { font-size: 1.12rem; margin: 0 0 .8rem; }
h3 { font-size: .95rem; margin: 0 0 .3rem; }
p { margin: .3rem 0; }
header { display: flex; flex-wrap: wrap; align-items: center; gap: .4rem .9rem; margin-bottom: 1.1rem; }
header p { flex-basis: 100%; margin: 0; color: var(--muted); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(205px, 1fr)); gap: .8rem; margin: 0 0 1rem; }
.tile, section { background: var(--card); border: 1px solid var(--grid); border-radius: 10px; }
.tile { padding: .75rem 1rem .8rem; }
.tile dt, .tile small { color: var(--muted); font-size: .83rem; }
.tile dt::first-letter { text-transform: uppercase; }
.tile dd { margin: 0; }
.tile b { display: block; font-size: 1.65rem; line-height: 1.25; font-weight: 650; letter-spacing: -.02em;
  overflow-wrap: anywhere; }
.tile small { display: block; line-height: 1.35; }
section { padding: 1.1rem 1.2rem; margin: 0 0 1rem; }
.notes { background: var(--warm); border-color: var(--warm-edge); }
.notes ul { margin: 0; padding-left: 1.2rem; }
.muted { color: var(--muted); font-size: .88rem; }
.two { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); gap: 1.4rem 1.8rem; }
.two > * { min-width: 0; }
.two > figure:only-child { max-width: 36rem; }
figure { margin: 0; }
figcaption { display: flex; flex-wrap: wrap; gap: 0 1rem; align-items: baseline; margin-bottom: .2rem; }
figcaption h3 { margin: 0; }
.key { font-size: .84rem; color: var(--muted); white-space: nowrap; }
.key i { display: inline-block; width: .8rem; height: .2rem; border-radius: 2px; margin-right: .35rem;
  vertical-align: .22rem; }
.key b { color: var(--ink); font-weight: 600; }
svg { display: block; width: 100%; height: auto; stroke-linejoin: round; }
svg text { font-size: 10.5px; fill: var(--muted); }
.scroll { overflow-x: auto; max-width: 100%; }
.tall { max-height: 36rem; overflow: auto; }
.tall .scroll { overflow: visible; }
.tall thead th { position: sticky; top: 0; background: var(--card); }
table { border-collapse: collapse; width: 100%; font-size: .9rem; }
th, td { padding: .3rem .6rem; text-align: right; border-bottom: 1px solid var(--grid); white-space: nowrap; }
tr > :first-child { text-align: left; padding-left: 0; }
tbody th { font-weight: 500; white-space: normal; overflow-wrap: anywhere; min-width: 7rem; }
thead th { color: var(--muted); font-weight: 500; font-size: .83rem; vertical-align: bottom; }
tbody tr:last-child > * { border-bottom: 0; }
.pairs :nth-child(2) { text-align: left; }
.pairs td:nth-child(2) { white-space: normal; overflow-wrap: anywhere; min-width: 6rem; }
.noted tr > :last-child { text-align: left; padding-left: 1.4rem; }
.noted td:last-child { white-space: normal; min-width: 15rem; }
.facts { width: auto; min-width: min(100%, 30rem); }
.facts td { white-space: normal; overflow-wrap: anywhere; }
.facts th { color: var(--muted); padding-right: 1.5rem; }
.facts td { text-align: left; }
.bar { display: inline-flex; align-items: center; justify-content: space-between;
  --track-width: clamp(40px, 11vw, 150px); min-width: calc(var(--track-width) + 4.1rem); }
.bar::before { content: ""; flex: none; width: var(--track-width); height: .5rem; border-radius: 4px;
  margin-right: .6rem; background: linear-gradient(90deg, var(--first) calc(var(--share) * 100%), var(--track) 0); }
.matrix { width: auto; font-size: .82rem; border-collapse: separate; border-spacing: 2px; margin: 0; }
.matrix th, .matrix td { border: 0; }
.matrix td { width: 2.55rem; min-width: 2.1rem; height: 2rem; padding: 0 .15rem; text-align: center;
  border-radius: 3px; background: var(--track); }
.matrix td.none { color: transparent; }
.matrix td.strong { color: #fff; }
.matrix thead th { writing-mode: vertical-rl; transform: rotate(180deg); padding: .3rem 0; text-align: left;
  vertical-align: top; max-height: 9rem; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.matrix thead th:first-child { writing-mode: initial; transform: none; vertical-align: bottom; }
.matrix tbody th { text-align: right; padding: 0 .4rem 0 0; min-width: 0; max-width: 9rem; white-space: nowrap;
  overflow: hidden; text-overflow: ellipsis; }
.heat { display: block; width: 100%; max-width: 520px; aspect-ratio: 1; image-rendering: pixelated;
  border: 1px solid var(--grid); background: var(--page); }
.tiles-picture { display: block; width: 100%; max-width: 560px; height: auto; }
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(132px, 1fr)); gap: 1rem .9rem; }
.gallery img, .strip img { display: block; width: 100%; aspect-ratio: 1; object-fit: contain;
  background: var(--track); border-radius: 6px; }
.gallery img.few, .strip img.few { image-rendering: pixelated; }
.gallery p { margin: .35rem 0 0; line-height: 1.3; font-size: .86rem; overflow-wrap: anywhere; }
.gallery .wrong { color: var(--bad); font-weight: 600; }
.gallery .file { color: var(--muted); font-size: .76rem; margin-top: .1rem; }
.gallery .seen { grid-column: span 2; }
.gallery .seen > div { display: grid; grid-template-columns: 1fr 1fr; gap: .4rem; }
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 200px), 1fr)); gap: 1rem .9rem; }
.panels img { display: block; width: 100%; border-radius: 6px; background: var(--track); }
.panels p { margin: .35rem 0 0; line-height: 1.3; font-size: .86rem; overflow-wrap: anywhere; }
.panels + .panels, .panels + h3, .scroll + h3 { margin-top: 1.4rem; }
.strips { display: grid; grid-template-columns: minmax(5.5rem, 12rem) 1fr; gap: .9rem 1.2rem; align-items: center;
  margin-top: .8rem; }
.strips h3, .pair p { margin: 0; overflow-wrap: anywhere; line-height: 1.3; }
.strip { display: grid; grid-template-columns: repeat(6, minmax(0, 128px)); gap: .5rem; }
.pair { display: grid; grid-template-columns: minmax(0, 13rem) 1fr; gap: .9rem; align-items: center; }
.pair .strip { grid-template-columns: 1fr 1fr; }
.pair p + p { margin-top: .35rem; }
.keys { display: flex; flex-wrap: wrap; gap: .1rem 1rem; margin-bottom: .6rem; }
.map { border: 1px solid var(--grid); border-radius: 8px; background: var(--page); padding: 14px; }
.map > div { position: relative; width: 100%; aspect-ratio: 8 / 5; }
.map span { position: absolute; width: 10px; height: 10px; margin: -5px; border-radius: 50%; opacity: .85; }
.map .doubtful { box-shadow: 0 0 0 2px var(--ink); opacity: 1; }
.map img { display: none; position: absolute; width: 128px; height: 128px; object-fit: contain; background: var(--card);
  border: 1px solid var(--muted); border-radius: 6px; image-rendering: auto; pointer-events: none; }
.map .left img { left: 14px; } .map .right img { right: 14px; }
.map .top img { top: 0; } .map .bottom img { bottom: 0; }
.map span:hover, .map span:focus { opacity: 1; z-index: 1; outline: 2px solid var(--ink); }
.map span:hover img, .map span:focus img { display: block; }
details { margin-top: .8rem; }
summary { cursor: pointer; color: var(--first); width: fit-content; }
details > :nth-child(2) { margin-top: .6rem; }
.groups { columns: 2 340px; column-gap: 2rem; }
.groups > div { break-inside: avoid; margin-bottom: 1.1rem; }
.groups table { width: 100%; min-width: 0; table-layout: fixed; }
.groups td, .groups th { font-family: ui-monospace, "Liberation Mono", monospace; font-size: .8rem; min-width: 0; }
.groups details { margin: 0; }
footer { color: var(--muted); font-size: .82rem; text-align: center; }
@media (max-width: 560px) { main { padding: 1rem .7rem 2rem; } section { padding: .9rem .8rem; }
  .tiles { grid-template-columns: 1fr 1fr; gap: .6rem; } .tile { padding: .6rem .75rem; }
  .tile b { font-size: 1.3rem; } .gallery { grid-template-columns: repeat(auto-fill, minmax(98px, 1fr)); }
  th, td { padding: .3rem .25rem; } tbody th { min-width: 5rem; }
  table { font-size: .84rem; } .bar { --track-width: 22px; min-width: calc(var(--track-width) + 3rem); }
  .bar::before { margin-right: .2rem; } .matrix { font-size: .7rem; border-spacing: 1px; }
  .matrix td { min-width: 1.5rem; width: 1.6rem; height: 1.55rem; padding: 0; }
  .matrix thead th { font-size: .7rem; } .matrix thead th:first-child { white-space: normal; min-width: 0; }
  .matrix tbody th { max-width: 5.2rem; } .strips { grid-template-columns: 1fr; gap: .4rem; } }
@media print { section, .tile { break-inside: avoid; } }
"""
