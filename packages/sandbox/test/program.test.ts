import { freePort } from 'open-payments-programs'
import { describe, expect, test } from 'vitest'
import { startSandbox } from '../src/index.js'
import { runProgram } from '../src/run.js'

/** Runs the program, which is asked to stop when it is ready. */
async function ran(...args: string[]) {
  let [out, err] = ['', '']
  let stop = () => {}
  const stopped = new Promise<void>((resolve) => {
    stop = resolve
  })
  const note = () => {
    if (/is ready$/m.test(out + err)) stop()
  }
  const terminal = {
    out(text: string) {
      out += text
      note()
    },
    err(text: string) {
      err += text
      note()
    },
  }
  return { code: await runProgram(args, terminal, stopped), out, err }
}

describe('the program', () => {
  test('prints how to use it, on request', async () => {
    expect(await ran('--help')).toEqual({
      code: 0,
      out: expect.stringContaining('Usage: open-payments-sandbox'),
      err: '',
    })
  })

  test('says when it is ready, and ends with 0 when it is asked to stop', async () => {
    const { code, out, err } = await ran('--port', '0')
    expect([code, err]).toEqual([0, ''])
    expect(out).toMatch(/^open-payments-sandbox is ready$/m)
    expect(out).toContain('/alice')
  })

  test('prints one document with --json', async () => {
    const { out, err } = await ran('--port', '0', '--json')
    expect(err).toBe('open-payments-sandbox is ready\n')
    const { sandbox, wallets, accounts } = JSON.parse(out)
    expect([sandbox, wallets.length]).toEqual([expect.stringMatching(/\/sandbox$/), 2])
    expect(accounts.alice).toMatchObject({
      walletAddress: `${wallets[0].url}/alice`,
      keyId: expect.any(String),
      privateKeyPem: expect.stringContaining('PRIVATE KEY'),
      privateKeyJwk: { kty: 'OKP', d: expect.any(String) },
    })
  })

  test.each([
    ['an unknown option', '--ports', '1'],
    ['a port that is no number', '--port', 'http'],
    ['a port that is too large', '--port', '70000'],
    ['an argument', 'start'],
    ['a rule that names nobody', '--approve', 'nobody'],
    ['a rule that names no account of this wallet', '--deny', 'http://localhost:4100/nobody'],
  ])('refuses %s with the exit code 2', async (_, ...args) => {
    const { code, out, err } = await ran(...args)
    expect([code, out]).toEqual([2, ''])
    expect(err).toMatch(/^See .* --help\.$/m)
  })

  test('lists the accounts that a rule may name', async () => {
    const { err } = await ran('--approve', 'alise')
    expect(err).toContain(
      'no account is named alise: the accounts are alice, bruno, chie, app, dana',
    )
  })

  test('names a port that is in use with the exit code 3', async () => {
    const port = await freePort()
    const other = await startSandbox({ port })
    const { code, err } = await ran('--port', `${port}`)
    await other.stop()
    expect([code, err]).toEqual([
      3,
      `another program uses port ${port}: choose another with --port\n`,
    ])
  })
})
