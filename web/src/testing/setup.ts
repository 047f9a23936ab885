import { cleanup, configure } from '@testing-library/svelte';
import { afterEach, vi } from 'vitest';

// The machine may be busy.
configure({ asyncUtilTimeout: 30_000 });
vi.setConfig({ testTimeout: 60_000 });

// Menus are popovers, which this environment does not have.
HTMLElement.prototype.showPopover ??= () => undefined;
HTMLElement.prototype.hidePopover ??= () => undefined;

afterEach(cleanup);
