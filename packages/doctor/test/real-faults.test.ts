import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { mistakes } from './support/mistakes.js'

/** What real proxies, frameworks, browsers and databases break, each with the mistake that stands for it. */
const named: readonly (readonly [fault: string, mistake: string])[] = [
  ['nginx with a path in proxy_pass', 'The proxy decodes paths'],
  ['Apache without nocanon', 'The proxy decodes paths'],
  [
    'HAProxy with normalize-uri, upper case',
    'The proxy writes the hexadecimal digits of a query in upper case',
  ],
  ['HAProxy with normalize-uri, %7E', 'The proxy decodes what needs no encoding in a query'],
  ['lighttpd at its defaults', 'The proxy writes the hexadecimal digits of a query in upper case'],
  ['nginx, http-proxy-3 and hono/proxy', 'The proxy drops a question mark without a query'],
  ['c.req.path of Hono in a proxy', 'The proxy removes the query'],
  ['fixRequestBody, express-http-proxy', 'The proxy parses bodies and serializes them again'],
  ['express.json() before a gateway', 'A parser in front of a gateway has read the body'],
  ['express.json() before the wallet', 'express.json() runs before the servers'],
  ['a function without isBase64Encoded', 'A function passes bodies on in base64'],
  ['a function without rawQueryString', 'The proxy removes the query'],
  ['a limit of bodies', 'The proxy refuses bodies of more than 10 kB'],
  ['proxy_intercept_errors, ProxyErrorOverride', 'The proxy replaces errors by pages of its own'],
  ['a gateway that renames WWW-Authenticate', 'The proxy removes WWW-Authenticate'],
  ['ip_allow.yaml of Traffic Server', 'The proxy forbids DELETE'],
  ['cors() before the wallet', 'cors() answers OPTIONS'],
  ['a cache that ignores no-store', 'The proxy caches GET requests'],
  ['a link that sends each request twice', 'The proxy sends each request twice'],
  ['csrf() of Hono, SvelteKit and Astro', 'A guard against forged forms stands before the wallet'],
  ['helmet() on the consent page', 'helmet() stops the redirect to the client after consent'],
  ['a stage or prefix that is removed', 'The proxy removes the prefix of the resource server'],
  ['a prefix that is doubled', 'The proxy adds a prefix to the paths of the servers'],
  ['memory in each process of a cluster', 'Two processes have a store in memory each'],
  ['row level security without a policy', 'The database hides the grants'],
  ['a database that refuses to write', 'The store of the authorization server is down'],
]

describe('a fault that was seen in a real program has a mistake, which the doctor must find', () => {
  test.each(named)('%s', (_, mistake) => {
    const found = mistakes.filter(({ name }) => name.startsWith(mistake))
    expect(found.map(({ name }) => name)).toHaveLength(1)
  })
})

test('the README says what the doctor cannot see', () => {
  const readme = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8')
  const [, section = ''] = /## What it cannot see\n([\s\S]*?)(?:\n## |$)/.exec(readme) ?? []
  for (const word of ['lost', '30 s', 'standby', 'sessions', 'Content-Length']) {
    expect(section).toContain(word)
  }
})
