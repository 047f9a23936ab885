import { stopPastViewer, stopTitleViewer, stopViewer } from '../now/actions';
import type { Viewer } from './viewers';

/** Disconnects a viewer. */
export const stopOf = ({ kind, uuid, client }: Viewer): Promise<void> =>
	kind === 'live'
		? stopViewer(uuid, client)
		: kind === 'title'
			? stopTitleViewer(client)
			: stopPastViewer(client);
