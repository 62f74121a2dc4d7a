import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { newUuid } from '../src/protocol/uuid.js'

const guide = readFileSync('docs/migrating-from-rafiki.md', 'utf8')
const [, form = ''] = /location ~ "([^"]+)"/.exec(guide) ?? []

describe('the proxy of the guide for Rafiki sends', () => {
  const isRafikis = (path: string) => new RegExp(form).test(path)

  test.each(['incoming-payments', 'outgoing-payments'])('Rafiki its own %s', (collection) => {
    const path = `/tenant/${collection}/${randomUUID()}`
    expect([path, `${path}/complete`].map(isRafikis)).toEqual([true, true])
  })

  test.each(['incoming-payments', 'outgoing-payments'])('the library its %s', (collection) => {
    const path = `/tenant/${collection}/${newUuid(Date.now(), crypto)}`
    expect([path, `${path}/complete`, `/${collection}`].map(isRafikis)).toEqual([
      false,
      false,
      false,
    ])
  })
})
