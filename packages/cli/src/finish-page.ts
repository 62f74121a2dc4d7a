import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'

/** The look of open-payments-pages, which this program does not contain. */
const style = `:root{color-scheme:light dark;--accent:#0b5bd3;--background:#f3f4f7;--surface:#fff;--text:#14171f;
--muted:#535b6b;--border:#dde1e8}
@media (prefers-color-scheme:dark){:root{--accent:#8ab4ff;--background:#0e1014;--surface:#191c22;--text:#eef1f6;
--muted:#a7b0bf;--border:#2d323c}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;padding:1.5rem 1rem;background:var(--background);color:var(--text);
font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
main{max-width:30rem;margin:0 auto;padding:1.5rem;background:var(--surface);border:1px solid var(--border);
border-radius:14px}
h1{font-size:1.25rem;line-height:1.3;margin:0 0 .25rem}p{margin:.5rem 0 0;color:var(--muted)}`

const texts = {
  returned: [
    'Back to the terminal',
    'You can close this page. The terminal shows what comes next.',
  ],
  unknown: ['Not found', 'This page does not exist.'],
} as const

/** Answers a browser that returns from the consent page, or one that asks for anything else. */
export function answerBrowser(response: ServerResponse, name: keyof typeof texts): void {
  const [title, text] = texts[name]
  const nonce = randomBytes(16).toString('base64')
  response.writeHead(name === 'returned' ? 200 : 404, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': `default-src 'none'; style-src 'nonce-${nonce}'; frame-ancestors 'none'; base-uri 'none'`,
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
    connection: 'close',
  })
  response.end(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<style nonce="${nonce}">${style}</style></head>
<body><main><h1>${title}</h1><p>${text}</p></main></body></html>`)
}
