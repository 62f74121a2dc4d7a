import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { clientRefusals } from '../src/refusal.js'

test('the table of the README has each refusal once', () => {
  const [, table = ''] = readFileSync('packages/client/README.md', 'utf8').split(
    '## What refusals mean',
  )
  const firsts = [...table.matchAll(/^\| (`[^|]*) \|/gm)].map(([, names = '']) => names)
  const named = firsts
    .flatMap((names) => names.match(/\w+/g) ?? [])
    .filter((name) => name !== 'refusal')
  expect(named.sort()).toEqual([...clientRefusals].sort())
})
