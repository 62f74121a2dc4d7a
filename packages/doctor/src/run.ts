import { escaped, type Output, onOneLine, ReachError, runWith } from 'open-payments-programs'
import { type DoctorOptions, doctor, doctorOptions } from './arguments.js'
import { checks, diagnose } from './doctor.js'
import { type DoctorNetwork, doctorInternet } from './network.js'
import { reportText } from './report.js'

/** Where the program writes. */
interface Terminal extends Output {
  /** Whether `err` is a terminal, which shows a line of progress. */
  readonly isInteractive: boolean
}

/** Runs the program, and resolves to its exit code. */
export function runProgram(
  args: readonly string[],
  terminal: Terminal,
  network: DoctorNetwork = doctorInternet,
): Promise<number> {
  return runWith(doctor, args, terminal, async (given) => {
    try {
      return await runDoctor(doctorOptions(given), terminal, network)
    } catch (error) {
      if (!(error instanceof ReachError)) throw error
      terminal.err(unreachable(error))
      return 2
    }
  })
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
