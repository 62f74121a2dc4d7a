import { setTimeout as sleep } from 'node:timers/promises'
import { expect, inject, onTestFinished, test } from 'vitest'
import { seededNumbers } from './customer.js'
import { totalOf } from './journal.js'
import { enterScene } from './scene.js'
import { rounds, seed } from './settings.js'

test(`a process that is killed under load, ${rounds} times, loses nothing and repeats nothing`, async () => {
  const scene = await enterScene(inject('database').url, seed)
  onTestFinished(scene.leave)
  const { server, load, journal } = scene
  const random = seededNumbers(seed)

  for (let round = 1; round <= rounds; round++) {
    const before = totalOf(journal.acknowledged)
    load.resume()
    await sleep(300 + random() * 1_200)
    load.hold()
    await server.kill()
    expect(totalOf(journal.acknowledged), 'operations in this round').toBeGreaterThan(before)

    await server.start()
    expect(await scene.look(), `round ${round}, before any repeat`).toEqual([])
    await load.settle()
    expect(await scene.look(), `round ${round}, after all repeats`).toEqual([])
  }

  expect(await scene.lookInPeace()).toEqual([])
  expect(totalOf(journal.unknown)).toBeGreaterThan(rounds)
  console.log(`killed ${rounds} times: ${scene.summary()}`)
})
