import { escaped, onOneLine, ReachError, UsageError } from 'open-payments-programs'
import { type DoctorOptions, doctorOptions, usage } from './arguments.js'
import { checks, diagnose } from './doctor.js'
import { type DoctorNetwork, doctorInternet } from './network.js'
import { reportText } from './report.js'

/** Where the program writes. */
interface Terminal {
  out(text: string): void
  err(text: string): void
  /** Whether `err` is a terminal, which shows a line of progress. */
  readonly isInteractive: boolean
}

/** Runs the program, and resolves to its exit code. */
export async function runProgram(
  args: readonly string[],
  terminal: Terminal,
  network: DoctorNetwork = doctorInternet,
): Promise<0 | 1 | 2> {
  try {
    const options = doctorOptions(args)
    if (options === undefined) {
      terminal.out(usage)
      return 0
    }
    return await runDoctor(options, terminal, network)
  } catch (error) {
    if (error instanceof UsageError) terminal.err(`${onOneLine(error.message)}\n\n${usage}`)
    else if (error instanceof ReachError) terminal.err(unreachable(error))
    else throw error
    return 2
  }
}

async function runDoctor(
  options: DoctorOptions,
  terminal: Terminal,
  network: DoctorNetwork,
): Promise<0 | 1> {
  const progress = (check: string, index: number) => {
    if (terminal.isInteractive) terminal.err(`\r\x1b[K${index + 1}/${checks.length} ${check}`)
  }
  try {
    const report = await diagnose(options, progress, network)
    progressEnds(terminal)
    const text = options.json ? `${JSON.stringify(report, undefined, 2)}\n` : reportText(report)
    terminal.out(escaped(text))
    return report.ok ? 0 : 1
  } catch (error) {
    progressEnds(terminal)
    throw error
  }
}

/** Removes the line of progress. */
function progressEnds(terminal: Terminal): void {
  if (terminal.isInteractive) terminal.err('\r\x1b[K')
}

function unreachable({ failure, message }: ReachError): string {
  const hint = failure === 'private' ? ' For development, use --allow-private.' : ''
  return `Unreachable: ${onOneLine(message)}.${hint}\n`
}
