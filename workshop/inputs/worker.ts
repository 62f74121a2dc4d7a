import { type Part, runPart } from '../../test/support/inputs/parts.js'

/** Runs one part in a process of its own, and tells the parent how far it is, and then what it found. */
const [part, seed = '', count] = process.argv.slice(2)
const { user, system } = process.cpuUsage()
const report = await runPart(part as Part, {
  seed,
  count: Number(count),
  onProgress: (served) => void process.send?.({ served }),
})
const cpu = process.cpuUsage({ user, system })
const seconds = (cpu.user + cpu.system) / 1e6
process.send?.({ report, seconds, rss: process.memoryUsage().rss }, () => process.disconnect())
