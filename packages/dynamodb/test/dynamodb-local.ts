import { randomUUID } from 'node:crypto'
import { DynamoDB } from '@aws-sdk/client-dynamodb'

/** The address of DynamoDB Local, which `.ci/dynamodb` starts. */
export const endpoint = process.env['TEST_DYNAMODB_URL']

export function clientOf(address: string, maxAttempts = 3): DynamoDB {
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' }
  return new DynamoDB({ endpoint: address, region: 'local', credentials, maxAttempts })
}

export function newTable(): string {
  return `test-${randomUUID()}`
}
