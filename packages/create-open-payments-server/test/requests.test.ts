import { expect, test } from 'vitest'
import { requestLog } from '../templates/wallet/src/start-page/requests.js'

test('the list of requests leaves out what browsers ask for their icon', () => {
  const log = requestLog()
  const request = { at: '', wallet: '', method: 'GET', ms: 1 }
  for (const path of ['/alice', '/favicon.ico', '/favicon.ico?1']) log.add({ ...request, path })
  expect(log.list().map(({ id, path }) => [id, path])).toEqual([
    [1, '/alice'],
    [2, '/favicon.ico?1'],
  ])
})

test('the list of requests keeps the latest 500', () => {
  const log = requestLog()
  const request = { at: '', wallet: '', method: 'POST', status: 200, ms: 1 }
  for (let count = 0; count < 600; count += 1) log.add({ ...request, path: '/quotes' })
  const ids = log.list().map(({ id }) => id)
  expect([ids.length, ids[0], ids[499]]).toEqual([500, 101, 600])
})
