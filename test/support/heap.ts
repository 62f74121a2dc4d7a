import v8 from 'node:v8'
import vm from 'node:vm'

v8.setFlagsFromString('--expose-gc')
const collectGarbage: () => void = vm.runInNewContext('gc')

/** Runs some work and returns the bytes of the heap that it leaves in use. */
export async function retainedBytes(work: () => Promise<void>): Promise<number> {
  const before = usedBytes()
  await work()
  return usedBytes() - before
}

/** Returns the bytes of the heap in use, after a collection. */
export function usedBytes(): number {
  collectGarbage()
  collectGarbage()
  return process.memoryUsage().heapUsed
}
