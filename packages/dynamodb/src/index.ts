/**
 * Stores records in Amazon DynamoDB. It imports only the types of the AWS SDK.
 *
 * @module open-payments-server-dynamodb
 */

export { dynamodbStore } from './store.js'
export {
  checkTable,
  createTable,
  type DynamodbOptions,
  type TableCheck,
  tableDefinition,
} from './table.js'
