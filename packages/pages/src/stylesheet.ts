import { amountRules } from './amounts.js'

/** The stylesheet of every page. A brand changes the custom properties. */
export const stylesheet = `
:root{color-scheme:light dark;
--accent:#0b5bd3;--on-accent:#fff;--background:#f3f4f7;--surface:#fff;--text:#14171f;--muted:#535b6b;
--border:#dde1e8;--control:#7c8595;--danger:#b3261e;--warning:#fff4d6;--on-warning:#5c3d00;
--radius:14px;--font:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Noto Sans Arabic",sans-serif}
@media (prefers-color-scheme:dark){:root{
--accent:#8ab4ff;--on-accent:#06204d;--background:#0e1014;--surface:#191c22;--text:#eef1f6;--muted:#a7b0bf;
--border:#2d323c;--control:#7d8797;--danger:#ff9a91;--warning:#3a2d08;--on-warning:#ffdf94}}
*{box-sizing:border-box}
bdi{overflow-wrap:anywhere}
.card,dd,li,.choice>span{container-type:inline-size}
.number{white-space:nowrap}
${amountRules}
html{-webkit-text-size-adjust:100%}
body{margin:0;min-height:100vh;background:var(--background);color:var(--text);font:1rem/1.5 var(--font);overflow-wrap:break-word;
padding:1.5rem 1rem 3rem}
header,nav,main,footer{max-width:30rem;margin:0 auto}
header{display:flex;flex-wrap:wrap;align-items:center;gap:.25rem .6rem;font-weight:650;padding:0 .25rem 1rem}
header svg,header img{height:2rem;width:auto;max-width:100%}
.owner{display:flex;flex-wrap:wrap;align-items:center;gap:0 .5rem;margin-inline-start:auto;color:var(--muted);font-size:.875rem;font-weight:400}
nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;list-style:none;margin:0;padding:0 .25rem .75rem}nav li{container-type:normal;margin:0}
nav a{display:inline-block;padding-block:.4rem;color:var(--muted);font-weight:500;text-decoration:none}
nav a[aria-current]{color:var(--text);box-shadow:inset 0 -2px var(--accent)}
footer{color:var(--muted);font-size:.875rem;padding:1rem .25rem}
h1{font-size:1.25rem;line-height:1.3;margin:0 0 .25rem;font-weight:650}
h2{font-size:1.125rem;line-height:1.3;margin:0;font-weight:650}
h3{font-size:1rem;margin:1rem 0 .25rem;font-weight:650}
p{margin:.5rem 0}
ul{margin:.5rem 0;padding-inline-start:1.25rem}li{margin-block:.25rem}
a{color:var(--accent)}
.card{background:var(--surface);border:1px solid var(--border);border-radius:var(--radius);padding:1.5rem;margin-block-end:1rem}
.card>:last-child,.card>form:last-child>:last-child{margin-block-end:0}
.quiet{color:var(--muted);font-size:.9375rem}
.small{font-size:.875rem}
.address{color:var(--muted);font-size:.9375rem;margin:0}.address b{color:var(--text);font-weight:600}
.amount{font-size:1.75rem;line-height:1.2;font-weight:700;letter-spacing:-.01em;margin:1.25rem 0 .75rem}
.amount span{display:block}
.several .amount{font-size:1.5rem}
p+dl{margin-block-start:.75rem}
dl{margin:0;border-block-start:1px solid var(--border)}
dl>div{display:flex;flex-wrap:wrap;gap:.25rem .75rem;padding:.55rem 0;border-block-end:1px solid var(--border)}
dt{color:var(--muted);flex:1 0 5.5rem}dd{margin:0;flex:3 1 12rem;min-width:0}
fieldset{border:0;margin:1rem 0;padding:0;min-width:0}
legend{padding:0;font-weight:600;margin-block-end:.5rem}
.choice{display:flex;gap:.75rem;align-items:center;border:1px solid var(--control);border-radius:calc(var(--radius)*.7);padding:.65rem .85rem;margin-block-end:.5rem;cursor:pointer}
.choice:has(:checked){border-color:var(--accent);box-shadow:inset 0 0 0 1px var(--accent)}
.choice input{flex:none;width:1.15rem;height:1.15rem;margin:0;accent-color:var(--accent)}
.choice span{flex:1;min-width:0}.choice small{display:block;color:var(--muted);font-weight:400;font-size:.875rem}
.warning{border:2px solid transparent;background:var(--warning);color:var(--on-warning);border-radius:calc(var(--radius)*.7);padding:.75rem 1rem}
.error{border:2px solid var(--danger);border-radius:calc(var(--radius)*.7);padding:.75rem 1rem;margin-block:.75rem 1rem;background:var(--surface)}
.error h2{font-size:1rem}.error p{margin:.25rem 0 0}
.done{border-inline-start:4px solid var(--accent);padding:.5rem .85rem;background:var(--surface);border-radius:4px}
.buttons{display:grid;grid-template-columns:minmax(0,1fr);gap:.75rem;margin-block-start:1.25rem}
button,.button{font:inherit;font-weight:600;color:var(--text);background:transparent;border:1px solid var(--control);
border-radius:calc(var(--radius)*.7);padding:.55rem 1rem;min-height:2.75rem;max-width:100%;cursor:pointer}
.buttons button{width:100%;min-height:3rem}
a.button{display:inline-flex;align-items:center;text-decoration:none;overflow-wrap:anywhere}
.unseen{position:absolute;width:1px;height:1px;min-height:0;padding:0;border:0;overflow:hidden;clip-path:inset(50%)}
button.primary{background:var(--accent);color:var(--on-accent);border-color:var(--accent)}
button.link{border:0;border-radius:4px;padding:0;min-height:1.75rem;color:var(--accent);font-weight:500;text-decoration:underline}
button.danger{color:var(--danger);border-color:var(--danger)}
label small{display:block;font-weight:400;color:var(--muted);font-size:.875rem}
.problem{color:var(--danger);font-weight:600;margin:.25rem 0}
dd small{display:block}
label{display:block;font-weight:600;margin-block:.75rem .25rem}
input:not([type=radio]),select,textarea{display:block;font:inherit;width:100%;color:var(--text);background:var(--surface);
border:1px solid var(--control);border-radius:calc(var(--radius)*.5);padding:.55rem .75rem;min-height:2.75rem}
input[aria-invalid],textarea[aria-invalid]{border:2px solid var(--danger)}
textarea{font-family:ui-monospace,monospace;font-size:.875rem}
summary{cursor:pointer;color:var(--accent);padding-block:.5rem;min-height:2.5rem;font-weight:500}
details>:last-child{margin-block-end:.25rem}
.actions{display:flex;flex-wrap:wrap;gap:.5rem 1.25rem;align-items:start;border-block-start:1px solid var(--border);margin-block-start:1rem;padding-block-start:.75rem}
.actions details[open]{flex-basis:100%}
.badge{border:1px solid transparent;display:inline-block;background:var(--warning);color:var(--on-warning);border-radius:99px;padding:.1rem .7rem;font-size:.875rem;font-weight:600}
.search{margin-block:1rem}.search>div{display:flex;gap:.5rem}.search input{flex:1;min-width:0}
.history{list-style:none;padding:0}.history li{border-block-start:1px solid var(--border);padding-block:.5rem;margin:0}
.limit{margin-block:1rem}
.card section{border-block-start:1px solid var(--border);margin-block-start:1rem;padding-block-start:.75rem}
.limit strong{display:block;font-size:1.0625rem}
.bar{display:block;width:100%;height:.6rem;margin-block:.5rem .35rem;border-radius:99px;background:var(--border);fill:var(--accent);forced-color-adjust:none}
.waits{opacity:.45}
[dir=ltr] li:not(.history li,nav li)::first-letter,[dir=ltr] .limit strong::first-letter{text-transform:uppercase}
[dir=rtl] .bar{transform:scaleX(-1)}
.sides{display:flex;flex-wrap:wrap;justify-content:space-between;gap:0 1rem;margin:0}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
@media (forced-colors:active){button.primary{border-width:3px}}
@media (max-width:26rem){body{padding:1rem .5rem 2rem}.card{padding:1.1rem}.amount{font-size:1.5rem}}
`
