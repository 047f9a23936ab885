import { render, screen, waitFor } from '@testing-library/svelte';
import { createRawSnippet } from 'svelte';
import { afterEach, expect, test, vi } from 'vitest';
import { messages } from './messages.svelte';
import OnDemand from './OnDemand.svelte';

const children = createRawSnippet((view: () => string) => ({ render: () => `<p>${view()}</p>` }));

afterEach(() => {
	messages.list = [];
});

test('what is loaded is shown', async () => {
	const onfailed = vi.fn();
	render(OnDemand<string>, { load: async () => 'The dialog', onfailed, children });
	await screen.findByText('The dialog');
	expect(onfailed).not.toHaveBeenCalled();
});

test('what cannot be loaded is a message, and whoever wanted it knows', async () => {
	const onfailed = vi.fn();
	render(OnDemand<string>, {
		load: () => Promise.reject(new Error('The file is gone.')),
		onfailed,
		children,
	});
	await waitFor(() => expect(messages.list.map((it) => it.text)).toEqual(['The file is gone.']));
	expect(onfailed).toHaveBeenCalledOnce();
});
