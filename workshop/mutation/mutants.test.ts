import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { mutantsOf, readSurvivors } from './mutants.js'

const source = 'const a = 1\nconst b =\n  one <\n  two\n'

test('a mutant is shown as its lines before and after the change, each joined to one line', () => {
  const location = { start: { line: 3, column: 3 }, end: { line: 4, column: 6 } }
  const mutants = [{ status: 'Survived', replacement: 'one <= two', location }]
  expect(mutantsOf({ files: { 'a.ts': { source, mutants } } })).toEqual([
    { file: 'a.ts', line: 3, status: 'Survived', at: 'one < two', becomes: 'one <= two' },
  ])
})

test('the list of survivors gives each mutant its file and the reason above it', () => {
  const markdown = [
    '# Title',
    'Not a reason.',
    '## src/a.ts',
    'The first',
    'reason.',
    '```diff',
    '- one < two',
    '+ one <= two',
    '+ true',
    '```',
    'The second reason.',
    '```diff',
    '- a',
    '+ b',
    '```',
  ]
  const file = 'src/a.ts'
  expect(readSurvivors(markdown.join('\n'))).toEqual([
    { file, at: 'one < two', becomes: 'one <= two', reason: 'The first reason.' },
    { file, at: 'one < two', becomes: 'true', reason: 'The first reason.' },
    { file, at: 'a', becomes: 'b', reason: 'The second reason.' },
  ])
})

test('every listed survivor has a reason, and a file that exists', () => {
  const listed = readSurvivors(readFileSync('workshop/mutation/survivors.md', 'utf8'))
  expect(listed.filter(({ reason }) => reason === '')).toEqual([])
  expect(listed.filter(({ file }) => !existsSync(file))).toEqual([])
})
