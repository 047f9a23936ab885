import './styles/tokens.css';
import './styles/base.css';
import { mount } from 'svelte';
import { session } from '$lib/auth';
import { loadLanguage } from '$lib/i18n';
import { live } from '$lib/live';
import { router } from '$lib/router';
import App from './shell/App.svelte';

/** A file of an older version is gone after an update of the gateway: the new page is loaded, once. */
addEventListener('vite:preloadError', (event) => {
	const at = Number(sessionStorage.getItem('headwater.reloaded') ?? 0);
	// Without a gateway there is no new page, and what was typed would be lost.
	if (Date.now() - at < 60_000 || live.state === 'closed' || router.isDirty) return;
	event.preventDefault();
	sessionStorage.setItem('headwater.reloaded', String(Date.now()));
	location.reload();
});

router.start();
void session.start().then(() => live.start());

void loadLanguage().then(() => {
	const target = document.getElementById('app');
	if (target) mount(App, { target });
});
