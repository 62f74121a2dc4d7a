import { describe, expect, test } from 'vitest'
import { search, told } from '../exhaustive/search.js'
import { consumersOf } from './consumer-search.js'
import { planted } from './mistakes.js'
import { type SceneName, sceneOf, scenes } from './scenes.js'

describe('in every order of events, answers and accidents', () => {
  test.each(Object.keys(scenes) as SceneName[])('the laws of delivery hold: %s', (name) => {
    const scene = sceneOf(name)
    const found = search(consumersOf(scene), scene.depth)
    console.log(told(found))
    expect(found.broken).toBeUndefined()
    expect(found.depth === scene.depth || found.complete).toBe(true)
  })
})

describe('the search finds consumers that', () => {
  test.each(Object.entries(planted))('%s', (_fault, { scene, mistake, law, moves }) => {
    const { broken } = search(consumersOf(sceneOf(scene), mistake), 16)

    expect(broken?.law).toMatch(law)
    expect(broken?.path).toHaveLength(moves)
  })
})
