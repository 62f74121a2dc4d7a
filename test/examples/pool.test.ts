import { expect, test } from 'vitest'
import { exited, run } from './program.js'

const server = process.env['TEST_DATABASE_URL']

test.skipIf(server === undefined)(
  'a process survives the end of a connection during a transaction of its own',
  async () => {
    const DATABASE_URL = server ?? ''
    const { ended, printed } = run('test/examples/terminated-connection.ts', { DATABASE_URL })
    expect(await ended, printed.err).toEqual(exited)
    expect(printed.out).toBe('rejected: ERR_TRANSACTION_FAILED\nthen: true\n')
  },
)
