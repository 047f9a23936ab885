export { base } from './base';
export {
	definePage,
	leaveGuard,
	navigate,
	PAGE_GROUPS,
	router,
	setQuery,
	to,
	type Page,
	type PageGroup,
} from './router.svelte';
