// Lists: one page, or all items.

interface Page<T> {
  data: T[];
  has_more: boolean;
  next_cursor: string | null;
}

/**
 * Request for a list. `await` it to get one page, or iterate over it with `for await` to get the
 * items of all pages. Nothing is sent before.
 */
export class List<P extends Page<T>, T> implements PromiseLike<P>, AsyncIterable<T> {
  readonly #load: (cursor?: string) => Promise<P>;

  constructor(load: (cursor?: string) => Promise<P>) {
    this.#load = load;
  }

  then<A = P, B = never>(
    onFulfilled?: ((page: P) => A | PromiseLike<A>) | null,
    onRejected?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#load().then(onFulfilled, onRejected);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    let cursor: string | undefined;
    do {
      const page: P = await this.#load(cursor);
      yield* page.data;
      cursor = page.has_more && page.next_cursor ? page.next_cursor : undefined;
    } while (cursor);
  }
}
