/** A column of a list. */
export interface Column {
	key: string;
	title: string;
	/** A track of a CSS grid; `1fr` without it. */
	width?: string;
	align?: 'start' | 'end';
	/** Name of the order by this column. */
	order?: string;
}
