// heights.js -- where the rows of a long list begin, when each has a height of its own.

const BLOCK = 256;

export class Heights {
	#each = [];
	#blocks = [];	// Sums of BLOCK rows each.
	total = 0;

	get length() {
		return this.#each.length;
	}

	clear() {
		this.#each = [];
		this.#blocks = [];
		this.total = 0;
	}

	push(height) {
		const block = Math.floor(this.#each.length / BLOCK);

		this.#each.push(height);
		this.#blocks[block] = (this.#blocks[block] ?? 0) + height;
		this.total += height;
	}

	at(i) {
		return this.#each[i];
	}

	set(i, height) {
		const more = height - this.#each[i];

		this.#each[i] = height;
		this.#blocks[Math.floor(i / BLOCK)] += more;
		this.total += more;
	}

	// Where row i begins.
	top(i) {
		const block = Math.floor(i / BLOCK);
		let top = 0;

		for (let b = 0; b < block; b++)
			top += this.#blocks[b];
		for (let j = block * BLOCK; j < i; j++)
			top += this.#each[j];
		return top;
	}

	// The row at a distance from the beginning.
	find(offset) {
		let block = 0;
		let i;

		while (block < this.#blocks.length - 1 && offset >= this.#blocks[block])
			offset -= this.#blocks[block++];
		for (i = block * BLOCK; i < this.#each.length - 1 && offset >= this.#each[i]; i++)
			offset -= this.#each[i];
		return i;
	}
}
