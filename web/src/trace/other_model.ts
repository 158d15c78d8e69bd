/** A model that is asked only for its translation: it is unpacked when that is first wanted. */

import { unpackWeights, type CarriedModel } from "../model/config";
import { decode, GREEDY } from "../model/decode";
import { itemAt } from "../model/items";
import { Recurrent } from "../model/recurrent";
import { WordTokenizer } from "../model/tokenizer";
import { Transformer } from "../model/transformer";

export class OtherModel {
  private tokenizer?: WordTokenizer;

  constructor(
    readonly carried: CarriedModel,
    private network?: Recurrent | Transformer,
  ) {}

  /** Its translation, decoded greedily. */
  async write(text: string): Promise<string> {
    const { carried } = this;
    const Model = carried.model.architecture === "recurrent" ? Recurrent : Transformer;
    const network = (this.network ??= new Model(carried.model, unpackWeights(carried)));
    const tokenizer = (this.tokenizer ??= new WordTokenizer(carried.tokenizer, carried.source_vocabulary, carried.target_vocabulary));
    const memory = network.encode(tokenizer.encodeSource(text).ids, { changes: [] });
    const found = await decode(network, memory, carried, GREEDY, [], []);
    return tokenizer.decodeTarget(itemAt(found.hypotheses, 0).ids);
  }
}
