import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { listen } from '../templates/wallet/src/listen.js'

test('a wallet whose port is in use says what to change', async () => {
  const other = createServer()
  await listen(other, 0, 'localhost')
  const { port } = other.address() as AddressInfo
  await expect(listen(createServer(), port, 'localhost')).rejects.toThrow(
    `another program uses port ${port}: set PORT to another one`,
  )
  other.close()
})
