/** The path below which the gateway is reached, without a slash at the end; it writes it into the page. */
export const base: string =
	typeof document === 'undefined'
		? ''
		: (document.querySelector<HTMLMetaElement>('meta[name=base]')?.content ?? '');
