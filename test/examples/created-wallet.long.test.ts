import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { freePort } from 'open-payments-programs'
import { afterAll, describe, expect, test } from 'vitest'
import { postLogin } from '../../examples/demo/browser.js'
import { exited, killPrograms, run, untilPrinted } from './program.js'

afterAll(killPrograms)

/** Runs `npm start` on a free port. */
async function started(environment: Record<string, string> = {}) {
  const port = await freePort()
  const program = run('examples/created-wallet/main.ts', { PORT: `${port}`, ...environment })
  return { ...program, program, baseUrl: `http://localhost:${port}` }
}

describe('npm start', () => {
  test('serves a new wallet without a database, prints the password of its owners, and ends on request', async () => {
    const { program, child, printed, ended, baseUrl } = await started()
    await untilPrinted(program, 'Sign in:')
    expect(printed.out).toContain('The wallet opens a new database of PGlite.')
    const [, password = ''] = /with the password (\S+)/.exec(printed.out) ?? []
    const signIn = (given: string) => postLogin(baseUrl, { owner: 'alice', password: given })
    expect((await signIn(password)).status).toBe(303)
    expect((await signIn('')).status).toBe(401)
    for (const path of ['/', '/alice', '/bob', '/alice/jwks.json']) {
      expect((await fetch(baseUrl + path)).status, path).toBe(200)
    }
    child.kill('SIGTERM')
    expect(await ended, printed.err).toEqual(exited)
  })

  test('says what to change if its port is in use', async () => {
    const other = createServer().listen(0, 'localhost')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const { ended, printed } = await started({ PORT: `${port}` })
    expect(await ended).toEqual({ code: 1, signal: null })
    expect(printed.err).toBe(
      `The wallet cannot start: another program uses port ${port}: set PORT to another one\n`,
    )
    other.close()
  })

  test('says which database it cannot open', async () => {
    const { ended, printed } = await started({ DATABASE_URL: 'postgres://localhost:1/wallet' })
    expect(await ended).toEqual({ code: 1, signal: null })
    expect(printed.err).toContain('The wallet cannot start: ')
    expect(printed.err).not.toContain('    at ')
  })
})
