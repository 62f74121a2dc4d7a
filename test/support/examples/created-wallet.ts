export { databaseOn } from '../../../examples/created-wallet/embedded-database.js'
