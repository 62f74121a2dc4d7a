import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { hashedListName } from '../../src/entry-adapter.js'

test('the hash of a list name is the one by which stores have kept their lists', async () => {
  const name = 'wallet01 https://wallet.example/zoë'
  const hash = createHash('sha256').update(JSON.stringify(name)).digest('hex')
  expect(await hashedListName(name)).toBe(hash)
  // A change of it would hide all lists that are stored.
  expect(await hashedListName('a')).toBe(
    'ac8d8342bbb2362d13f0a559a3621bb407011368895164b628a54f7fc33fc43c',
  )
})

test('list names with different lone surrogates have different hashes', async () => {
  expect(await hashedListName('\ud800')).not.toBe(await hashedListName('\ud801'))
})
