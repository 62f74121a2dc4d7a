import { afterAll, expect, test } from 'vitest'
import { exited, killPrograms, run } from './program.js'

afterAll(killPrograms)

test('the search finds the mistake of the naive store, and none in the memory store', async () => {
  const { printed, ended } = run('examples/payment-limits/main.ts', {})
  expect(await ended).toEqual(exited)
  expect(printed.err).toBe('')
  const [, story = '', played, rest] =
    /^The naive store:\n\n([\s\S]+)\n\(found in history (\d+)\)\n\n([\s\S]+)$/.exec(printed.out) ??
    []
  expect(rest).toBe('The memory store:\n\nno problem in 100 histories\n')
  expect(Number(played)).toBeLessThanOrEqual(2_000)
  // A grant, perhaps a payment, and a race whose two calls were both accepted.
  const usd = String.raw`USD \d+\.\d\d`
  for (const line of [
    `^the wallet accepted it; expected a refusal: (payment 1 is begun|grant 1, item 1, .*: limit ${usd}, spent ${usd}, over by ${usd})$`,
    String.raw`^ {5}time: 20\d\d-\d\d-\d\dT\S+Z$`,
    '^ {2}1\\. grant 1, approved$',
    `^ {5}- item 1.*: at most ${usd} .*: accepted$`,
    '^ {2}[23]\\. concurrently',
    '^ {5}- \\w+ .*: accepted\\n {5}- \\w+ .*: accepted$',
  ]) {
    expect(story).toMatch(new RegExp(line, 'm'))
  }
  expect(story.trimEnd().split('\n').length).toBeLessThan(12)
})
