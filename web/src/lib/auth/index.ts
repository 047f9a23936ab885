export { session, type Credentials } from './session.svelte';
