import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { internet, type Network } from 'open-payments-programs'
import {
  type CreatedWallet,
  plainWallet,
  startCreatedWallet,
} from 'open-payments-test-support/created-wallet'
import { decideAsOwner } from 'open-payments-test-support/owner-browser'
import { runClient } from '../../src/command.js'
import type { Machine } from '../../src/wire.js'

/** How a person uses the program in a test. */
export interface Person {
  /** What happens in the browser. Default: the owner approves. */
  readonly browse?: (url: string) => unknown
  /** What the person answers. Default: nobody can be asked. */
  readonly ask?: Machine['ask']
  readonly interrupted?: AbortSignal
  readonly network?: Network
}

/** Lets a slow machine take long. What the test itself says comes later, and counts. */
function patient([command, ...rest]: readonly string[]): readonly string[] {
  if (command === undefined) return []
  const waits = command === 'pay' || command === 'grant' ? ['--wait', '1h'] : []
  return [command, '--timeout', '600', ...waits, ...rest]
}

/** A folder for keys, in which the program runs. */
export function workplace() {
  const folder = mkdtempSync(join(tmpdir(), 'client-'))
  const keyFile = join(folder, 'open-payments', 'key.json')

  async function run(args: readonly string[], person: Person = {}) {
    const { browse = (url) => decideAsOwner(url), ask, network = internet } = person
    const printed = { out: '', err: '' }
    const opened: Promise<unknown>[] = []
    const machine: Machine = {
      out(text) {
        printed.out += text
      },
      err(text) {
        printed.err += text
      },
      env: { XDG_CONFIG_HOME: folder },
      open(url) {
        opened.push(Promise.resolve(browse(url)))
        return true
      },
      ask,
      interrupted: person.interrupted ?? new AbortController().signal,
    }
    const code = await runClient(patient(args), machine, network)
    await Promise.all(opened)
    return { code, ...printed }
  }

  return {
    folder,
    keyFile,
    run,
    /** Runs with `--json`, and returns the document. */
    async json(args: readonly string[], person?: Person) {
      const { code, out } = await run([...args, '--json'], person)
      return { code, body: JSON.parse(out) }
    },
    /** Publishes the key of the program in the key set of an account. */
    async register({ baseUrl, publish }: Pick<CreatedWallet, 'baseUrl' | 'publish'>) {
      const account = `${baseUrl}/alice`
      const { out } = await run(['key', account])
      await publish(account, JSON.parse(out))
    },
    key: () => JSON.parse(readFileSync(keyFile, 'utf8')),
    remove: () => rmSync(folder, { recursive: true }),
  }
}

/** Starts a wallet of `npm create`, which sends payments as they are created. */
export const testWallet = () => startCreatedWallet({ create: plainWallet })
