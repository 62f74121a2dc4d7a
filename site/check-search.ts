import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import MiniSearch from 'minisearch'
import { preferGuides, words } from './.vitepress/search.ts'

/**
 * Searches the built site as its search box does: words lead to guides, and the name of a symbol to its page.
 */

const chunks = 'dist/assets/chunks'
const file = readdirSync(chunks).find((name) => name.startsWith('@localSearchIndex')) ?? ''
const { default: index } = await import(pathToFileURL(join(chunks, file)).href)
const search = MiniSearch.loadJSON(index, {
  fields: ['title', 'titles', 'text'],
  storeFields: ['title', 'titles'],
  ...words,
  searchOptions: {
    prefix: true,
    boost: { title: 4, text: 2, titles: 1 },
    ...preferGuides,
  },
})

const expected: Readonly<Record<string, RegExp>> = {
  consent: /^(?!reference)/,
  limits: /^(?!reference)/,
  shutdown: /^production/,
  prometheus: /^telemetry/,
  'rate limit': /^client-keys/,
  transaction: /^(storage|outgoing-payments)/,
  fee: /^prices/,
  'add a consent page': /^getting-started/,
  'pay another wallet': /^outgoing-payments/,
  'how many payments per second': /^sizing/,
  'bank does not answer': /^(settlement|testing-kit)/,
  createWallet: /^reference\/open-payments-server\/functions\/createWallet/,
  postgresStore: /^reference\/open-payments-server\/postgres/,
}
for (const [query, path] of Object.entries(expected)) {
  const [first] = search.search(query)
  const found = String(first?.id).replace(/^.*?open-payments-server\//, '')
  if (path.test(found)) continue
  console.error(`a search for "${query}" first finds ${found}`)
  process.exitCode = 1
}
