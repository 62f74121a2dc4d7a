import { type Output, runWith, UsageError } from 'open-payments-programs'
import { program, type SandboxArguments, sandboxArguments } from './arguments.js'
import { SandboxError } from './error.js'
import { type Sandbox, startSandbox } from './sandbox.js'

/**
 * Runs the program until it is asked to stop, and resolves to its exit code.
 *
 * @param stopped resolves when the program is asked to stop.
 */
export function runProgram(
  args: readonly string[],
  output: Output,
  stopped: Promise<unknown>,
): Promise<number> {
  return runWith(program, args, output, async (given) => {
    try {
      await served(sandboxArguments(given), output, stopped)
      return 0
    } catch (error) {
      if (!(error instanceof SandboxError)) throw error
      if (error.code === 'ERR_INVALID_OPTION') throw new UsageError(error.message)
      const isInUse = error.code === 'ERR_PORT_IN_USE'
      output.err(
        `${isInUse ? error.message.replace('the option port', '--port') : error.message}\n`,
      )
      return isInUse ? 3 : 1
    }
  })
}

async function served(
  { json, ...options }: SandboxArguments,
  { out, err }: Output,
  stopped: Promise<unknown>,
): Promise<void> {
  const sandbox = await startSandbox(options)
  const ready = 'open-payments-sandbox is ready\n'
  // With --json, stdout has nothing but the document.
  if (json) out(`${JSON.stringify(sandbox.describe())}\n`)
  else out(summaryOf(sandbox))
  if (json) err(ready)
  else out(ready)
  await stopped
  await sandbox.stop()
}

function summaryOf(sandbox: Sandbox): string {
  const { accounts } = sandbox.describe()
  const lines = Object.values(accounts).map(
    ({ walletAddress, assetCode, keyId }) =>
      `  ${walletAddress.padEnd(30)} ${assetCode}  signs with ${keyId}`,
  )
  return `Accounts, whose private keys --json and the page have:\n${lines.join('\n')}\nPage: ${sandbox.url}\n`
}
