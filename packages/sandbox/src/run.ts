import { sandboxArguments, usage } from './arguments.js'
import { SandboxError } from './error.js'
import { type Sandbox, startSandbox } from './sandbox.js'

/** Where the program writes. */
export interface Terminal {
  out(text: string): void
  err(text: string): void
}

/**
 * Runs the program until it is asked to stop, and resolves to its exit code.
 *
 * @param stopped resolves when the program is asked to stop.
 */
export async function runProgram(
  args: readonly string[],
  { out, err }: Terminal,
  stopped: Promise<unknown>,
): Promise<0 | 1 | 2 | 3> {
  try {
    const options = sandboxArguments(args)
    if (options === undefined) {
      out(usage)
      return 0
    }
    const { json, ...rest } = options
    const sandbox = await startSandbox(rest)
    const ready = 'open-payments-sandbox is ready\n'
    // With --json, stdout has nothing but the document.
    if (json) out(`${JSON.stringify(sandbox.describe())}\n`)
    else out(summaryOf(sandbox))
    if (json) err(ready)
    else out(ready)
    await stopped
    await sandbox.stop()
    return 0
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    const isUsage = error.code === 'ERR_INVALID_OPTION'
    err(isUsage ? `${error.message}\n\n${usage}` : `${error.message}\n`)
    if (isUsage) return 2
    return error.code === 'ERR_PORT_IN_USE' ? 3 : 1
  }
}

function summaryOf(sandbox: Sandbox): string {
  const { accounts } = sandbox.describe()
  const lines = Object.values(accounts).map(
    ({ walletAddress, assetCode, keyId }) =>
      `  ${walletAddress.padEnd(30)} ${assetCode}  signs with ${keyId}`,
  )
  return `Accounts, whose private keys --json and the page have:\n${lines.join('\n')}\nPage: ${sandbox.url}\n`
}
