import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { serve } from '../serve.js'
import { createAccounts, type Entry } from './accounts.js'
import { custodianApi } from './api.js'
import { carry, fates, statuses } from './faults.js'

// A custodian in a process of its own. All that it knows is in its journal, so it can be killed at any time.
const { PORT = '0', JOURNAL = '', WALLET_URL = '', SECRET = '', REVIEW_MS = '0' } = process.env
/** How many of 100 requests fail. */
const failing = Number(process.env['FAILING'] ?? 0)

const lines = existsSync(JOURNAL) ? readFileSync(JOURNAL, 'utf8').split('\n') : []
const accounts = createAccounts({
  journal: lines.filter(Boolean).map((line) => JSON.parse(line) as Entry),
  append: (entry) => appendFileSync(JOURNAL, `${JSON.stringify(entry)}\n`),
  reviewMs: () => Number(REVIEW_MS),
})
const handle = custodianApi(accounts, () => Date.now())
const counts = { calls: 0, lost: 0 }
const pick = <Item>(items: readonly Item[]) =>
  items[Math.floor(Math.random() * items.length)] as Item

await serve(Number(PORT), async (request) => {
  const { pathname } = new URL(request.url)
  if (/^\/(?:accounts|arrivals|books)/.test(pathname)) return handle(request)
  counts.calls += 1
  const isLost = Math.random() * 100 < failing
  if (isLost) counts.lost += 1
  console.log(`${counts.lost} of ${counts.calls} calls lost`)
  if (!isLost) return handle(request)
  const later = (work: () => Promise<unknown>) => void setTimeout(work, Math.random() * 3_000)
  return carry(handle, request, { fate: pick(fates), status: pick(statuses) }, later)
})
console.log('ready')

for (;;) {
  for (const notice of accounts.notices(Date.now())) {
    const told = await fetch(`${WALLET_URL}/custodian`, {
      method: 'POST',
      headers: { authorization: `Bearer ${SECRET}` },
      body: JSON.stringify(notice),
    }).catch(() => undefined)
    if (told?.ok) accounts.notified(notice.id)
  }
  await new Promise((resolve) => setTimeout(resolve, 200))
}
