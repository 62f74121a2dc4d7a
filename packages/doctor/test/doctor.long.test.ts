import express, { type RequestHandler } from 'express'
import helmet from 'helmet'
import type { InteractionView } from 'open-payments-server'
import {
  allowReturn,
  corsBeforeServers,
  jsonBeforeServers,
} from 'open-payments-test-support/examples/integration'
import type { World } from 'open-payments-test-support/world'
import { describe, expect, test } from 'vitest'
import { reportText } from '../src/report.js'
import { examined, findingOf, found, livingWorld, mounted } from './support/doctor.js'

/** Serves a consent page behind middleware. */
function withConsentPage(world: World, before: RequestHandler, returns: boolean) {
  const app = express().use(before)
  app.get('/consent/:id', async (request, response) => {
    const view = (await world.auth.interactions.get(request.params['id'] ?? '')) as InteractionView
    const show = () => void response.send('<form method="post"></form>')
    if (returns && view !== undefined) allowReturn(request, response, show)
    else show()
  })
  return mounted(world, app)
}

describe('the doctor finds nothing wrong with', () => {
  test('the documented lines for helmet, cors and body parsers, with a client', async () => {
    const world = livingWorld()
    const app = express().use(helmet(), corsBeforeServers, jsonBeforeServers)
    const all = withConsentPage(world, app, true)
    const { code, report } = await examined(all, { asShop: true })
    expect(found(report)).toEqual([])
    expect([code, report.skipped]).toEqual([0, []])
  })

  test('a payment pointer', async () => {
    const { code, report } = await examined(mounted(livingWorld()), {
      args: ['$wallet.example/alice'],
    })
    expect([code, report.walletAddress]).toEqual([0, 'https://wallet.example/alice'])
  })
})

/** Serves a login page, to which the consent page redirects. */
function withLoginPage(world: World, login: string, policy: string) {
  const app = express()
  app.get('/consent/:id', ({ path }, response) => response.redirect(`${login}?next=${path}`))
  app.get('/login', (_, response) => {
    response.set('content-security-policy', policy).send('<form method="post"></form>')
  })
  return mounted(world, app)
}

test('the doctor advises to allow the redirects of a client, where a policy allows only its finish URI', async () => {
  const world = livingWorld()
  const formAction = ["'self'", 'https://shop.example', 'http://localhost:*', 'http://127.0.0.1:*']
  const own = helmet.contentSecurityPolicy({ directives: { formAction } })
  const { report } = await examined(withConsentPage(world, own, false), { asShop: true })
  expect([report.ok, found(report)]).toEqual([true, ['advice consent-page']])
  expect(findingOf(report, 'consent-page').fix).toContain("'https:'")
})

describe('the doctor says that it checked only the login page in front of the consent page', () => {
  test.each([
    ['that leads to the same origin', '/login', "form-action 'self'"],
    [
      'of another origin, whose form may lead back',
      'https://login.example/login',
      "form-action 'self' https://wallet.example",
    ],
  ])('%s', async (_, login, policy) => {
    const { report } = await examined(withLoginPage(livingWorld(), login, policy), { asShop: true })
    expect([report.ok, found(report)]).toEqual([true, ['note consent-page']])
    expect(report.passed).not.toContain('consent-page')
    expect(findingOf(report, 'consent-page').fix).toContain('form-action')
    expect(reportText(report)).toMatch(
      /^NOTE {4}consent-page\n[\s\S]*, 1 note, \d+ checks passed\.\n$/m,
    )
  })
})

describe('the doctor finds in an application', () => {
  test('a login page of another origin, whose form may not lead back to the consent page', async () => {
    const app = withLoginPage(livingWorld(), 'https://login.example/login', "form-action 'self'")
    const { report } = await examined(app, { asShop: true })
    expect(found(report)).toEqual(['problem consent-page'])
    const { what } = findingOf(report, 'consent-page')
    expect(what).toMatch(/login page does not let its form lead to https:\/\/wallet.example/)
  })
})
