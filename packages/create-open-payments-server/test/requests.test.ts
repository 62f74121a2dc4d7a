import { expect, test } from 'vitest'
import { requestLog } from '../templates/wallet/src/start-page/requests.js'

test('the list of requests keeps the latest 500', () => {
  const log = requestLog()
  const request = { at: '', wallet: '', method: 'POST', status: 200, ms: 1 }
  for (let count = 0; count < 600; count += 1) log.add({ ...request, path: '/quotes' })
  const ids = log.list().map(({ id }) => id)
  expect([ids.length, ids[0], ids[499]]).toEqual([500, 101, 600])
})
