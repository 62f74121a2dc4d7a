import { Session } from 'node:inspector/promises'

interface ProfileNode {
  readonly id: number
  readonly callFrame: { readonly functionName: string; readonly url: string }
  readonly children?: readonly number[]
}

/** Not work of any caller. */
const ofTheProcess = ['(program)', '(idle)', '(garbage collector)', '(root)']

/**
 * Returns the CPU time in microseconds that goes into files whose URL matches, while the work runs: their share of the
 * samples of the main thread, of the CPU time of the process. On a busy machine, samples alone would count the time of
 * others. A built-in function, such as `JSON.parse`, belongs to the file that calls it.
 */
export async function cpuUsIn(files: RegExp, work: () => Promise<unknown>): Promise<number> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.setSamplingInterval', { interval: 200 })
  await session.post('Profiler.start')
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  const { profile } = await session.post('Profiler.stop')
  session.disconnect()
  const nodes = profile.nodes as readonly ProfileNode[]
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((c) => [c, id])))
  const byId = new Map(nodes.map((node) => [node.id, node]))

  function fileOf(node: ProfileNode | undefined): string {
    if (node === undefined || ofTheProcess.includes(node.callFrame.functionName)) return ''
    return node.callFrame.url || fileOf(byId.get(parents.get(node.id) ?? -1))
  }

  let [inFiles, busy] = [0, 0]
  for (const id of profile.samples ?? []) {
    const node = byId.get(id)
    if (node === undefined || node.callFrame.functionName === '(idle)') continue
    busy += 1
    if (files.test(fileOf(node))) inFiles += 1
  }
  return busy === 0 ? 0 : ((user + system) * inFiles) / busy
}
