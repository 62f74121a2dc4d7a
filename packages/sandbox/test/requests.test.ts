import { expect, test } from 'vitest'
import { requestLog } from '../src/requests.js'

test('the list of requests keeps the latest, and packets leave room for other requests', () => {
  const log = requestLog()
  const request = { at: '', wallet: '', method: 'POST', status: 200, ms: 1 }
  for (let count = 0; count < 600; count += 1) log.add({ ...request, path: '/quotes' })
  for (let count = 0; count < 600; count += 1) log.add({ ...request, path: '/ilp/test.one' })
  const ids = log.list().map(({ id }) => id)
  expect(ids).toHaveLength(600)
  expect([ids[0], ids[499], ids[500], ids[599]]).toEqual([101, 600, 1101, 1200])
})
