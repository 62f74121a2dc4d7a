import { chmodSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { CreatedWallet } from 'open-payments-test-support/created-wallet'
import { decideAsOwner } from 'open-payments-test-support/owner-browser'
import { piped } from 'open-payments-test-support/piped'
import { isLong } from 'open-payments-test-support/runs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { testWallet, workplace } from './support/workplace.js'

/** What stands in the lines that `pay` prints on stderr, in this order. */
const everyLine = [
  '200',
  'is debited from',
  'is received at',
  'decide there',
  'continue',
  'outgoing payment',
  'is sent',
]
const lines = isLong ? everyLine : ['decide there']

interface Received {
  readonly receivedAmount: { readonly value: string }
}

describe('a payment whose program nobody reads any more', () => {
  const place = workplace()
  let wallet: CreatedWallet
  let from: string
  let stopBrowser: () => void
  const env: Record<string, string> = {}

  beforeAll(async () => {
    wallet = await testWallet()
    from = `${wallet.baseUrl}/alice`
    await place.register(wallet)
    // The browser is a program that has the owner approve the page with which it is started.
    const owner = createServer((request, response) => {
      const page = new URL(request.url ?? '', 'http://localhost').searchParams.get('page') ?? ''
      void decideAsOwner(page).finally(() => response.end())
    })
    await new Promise<void>((resolve) => owner.listen(0, '127.0.0.1', resolve))
    stopBrowser = () => owner.close()
    const address = `http://127.0.0.1:${(owner.address() as AddressInfo).port}/?page=`
    const browser = join(place.folder, 'browser')
    const script = `fetch(${JSON.stringify(address)} + encodeURIComponent(process.argv[2]))`
    writeFileSync(browser, `#!${process.execPath}\n${script}\n`)
    chmodSync(browser, 0o700)
    Object.assign(env, { XDG_CONFIG_HOME: place.folder, BROWSER: browser })
  })
  afterAll(async () => {
    stopBrowser()
    await wallet.stop()
    place.remove()
  })

  /** Pays 1.00, and closes pipes when the text is on stderr. Resolves to what became of it. */
  async function paid(names: readonly ('stdout' | 'stderr')[], line: string | undefined) {
    const before = await arrived()
    const receiver = `${wallet.baseUrl}/bob`
    const amounts = ['--from', from, '--amount', '1.00', '--yes', '--timeout', '600']
    const { child, printed, ended } = piped(
      ['packages/cli/src/main.ts', 'pay', receiver, ...amounts, '--wait', '1h'],
      env,
    )
    const close = () => {
      if (line !== undefined && !printed.err.includes(line)) return
      for (const name of names) child[name].destroy()
    }
    close()
    child.stderr.on('data', close)
    const code = await ended
    return { code, err: printed.err, arrived: (await arrived()) - before }
  }

  /** How many payments of this client Bob has received. */
  async function arrived(): Promise<number> {
    const { body } = await place.json(['list', `${wallet.baseUrl}/bob`])
    const received = body.result.map((each: Received) => each.receivedAmount.value)
    return received.filter((value: string) => value === '100').length
  }

  test.each<[when: string, line: string | undefined]>([
    ['from the start', undefined],
    ...lines.map((line): [string, string] => [`after the line with "${line}"`, line]),
  ])('is made once, and ends with 0, when both pipes are closed %s', async (_, line) => {
    const { code, err, arrived } = await paid(['stdout', 'stderr'], line)
    expect([code, arrived]).toEqual([0, 1])
    expect(err).not.toMatch(/EPIPE|\n\s+at /)
  })
})
