import { cleanup, configure } from '@testing-library/svelte';
import { afterEach, vi } from 'vitest';

// The machine may be busy.
configure({ asyncUtilTimeout: 30_000 });
vi.setConfig({ testTimeout: 60_000 });

// Texts and times are those of one locale on every machine: English, with hours from 0 to 23.
Object.defineProperty(navigator, 'languages', { value: ['en-u-hc-h23'], configurable: true });

// Menus are popovers, which this environment does not have.
HTMLElement.prototype.showPopover ??= () => undefined;
HTMLElement.prototype.hidePopover ??= () => undefined;
// It computes no layout either: nothing is in view.
globalThis.IntersectionObserver ??= class {
	observe(): void {}
	disconnect(): void {}
} as unknown as typeof IntersectionObserver;

afterEach(cleanup);
