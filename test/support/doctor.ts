import { piped } from './piped.js'

/** Runs the doctor as a program, and resolves to its exit code and what it printed. */
export async function doctor(args: readonly string[]) {
  const { printed, ended } = piped(['packages/doctor/src/main.ts', ...args])
  return { code: await ended, ...printed }
}
