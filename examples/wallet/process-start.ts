import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/**
 * Returns when a process of this machine was started, as text that no later process with the same id has.
 * Returns `''` if the time is unknown, and `undefined` if the process does not exist.
 */
export function startOf(pid: number): string | undefined {
  if (!isRunning(pid)) return undefined
  try {
    return process.platform === 'linux' ? startOnLinux(pid) : startByPs(pid)
  } catch {
    // The process may have ended in the meantime.
    return isRunning(pid) ? '' : undefined
  }
}

function isRunning(pid: number): boolean {
  try {
    // Signal 0 only checks that the process exists.
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Returns the boot id and the clock ticks from boot to the start of the process. */
function startOnLinux(pid: number): string | undefined {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The second field is the program's name in parentheses, which may contain any characters.
  const [state, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  if (state === 'Z') return undefined
  const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  return `${boot} ${fields[18]}`
}

function startByPs(pid: number): string {
  return execFileSync('ps', ['-o', 'lstart=', '-p', `${pid}`], { encoding: 'utf8' }).trim()
}
