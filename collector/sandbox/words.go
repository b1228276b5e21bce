package sandbox

// adjectives are the first words of generated handles. No adjective begins with another adjective. Therefore a generated handle begins with
// exactly one of them.
var adjectives = [64]string{
	"amber", "ancient", "arctic", "autumn", "basic", "bold", "brave", "breezy", "bright", "calm", "candid", "cheery", "clever", "cosmic", "cozy", "crisp",
	"curious", "daily", "dapper", "deep", "dusty", "eager", "early", "easy", "electric", "epic", "fancy", "fearless", "fresh", "funky", "gentle", "giddy",
	"golden", "grand", "happy", "honest", "humble", "indigo", "jolly", "jumpy", "keen", "kind", "lazy", "little", "lively", "lucky", "mellow", "mighty",
	"misty", "modern", "neon", "nimble", "noble", "odd", "plain", "proud", "quick", "quiet", "rapid", "rosy", "silent", "sunny", "tiny", "witty",
}

// nouns are the second words of generated handles.
var nouns = [64]string{
	"artist", "atlas", "attic", "baker", "barista", "beats", "bike", "bistro", "botanist", "builder", "camper", "canvas", "chef", "cinema", "climber", "closet",
	"coder", "comet", "crafts", "cyclist", "dancer", "diary", "diner", "drummer", "explorer", "falcon", "farmer", "fitness", "florist", "forest", "fox", "gamer",
	"garden", "gecko", "guitar", "hiker", "kitchen", "lab", "lens", "makeup", "market", "mechanic", "mom", "nomad", "otter", "panda", "pixel", "planner",
	"potter", "reader", "runner", "sailor", "skater", "studio", "surfer", "tailor", "teacher", "thrift", "traveler", "vet", "violin", "weaver", "wizard", "yogi",
}

// captions are the texts at the start of generated video titles.
var captions = []string{
	"Three ways to fold a fitted sheet", "I tried the viral pancake trick so you don't have to", "Wait for the last second", "POV: your cat runs the household",
	"This took me 47 hours to draw", "Day 12 of learning the drums", "Five minute dinner that my kids finally eat", "Nobody told me this about succulents",
	"Rating every espresso in my street", "How we built a desk from two doors", "My grandmother's dumplings, step by step", "The quietest beach in the country",
	"Outfit check for a rainy Monday", "Stop making this mistake in the gym", "Restoring a rusty knife from 1920", "One take, no cuts, lots of flour",
	"What I eat in a day as a nurse", "Teaching my dog to skateboard, part 4", "Small flat, big plants", "We drove 1,200 km for this noodle soup",
	"The trick that fixed my backhand", "Unboxing the cheapest camera I could find", "A song I wrote on the train", "Guess the price of this chair",
	"Cleaning a carpet that hadn't been cleaned in 10 years", "Morning routine of a potter", "Answering your questions about van life", "Before and after: the balcony",
	"El truco más fácil para pelar ajos", "On a testé le café le plus étrange de Lyon", "朝5時のパン屋さんのルーティン", "وصفة سريعة للعشاء في عشر دقائق",
	"दस मिनट में बनने वाली चाय", "Mein erster Marathon, ungeschnitten", "Eu não acredito que isso funcionou", "퇴근 후 십 분 요리",
}

// hashtags are appended to generated video titles.
var hashtags = []string{
	"fyp", "viral", "shorts", "reels", "foryou", "diy", "recipe", "fitness", "travel", "petsoftiktok", "catsofinstagram", "smallbusiness", "thrifted", "plantmom", "booktok",
	"cleantok", "drawing", "pottery", "vanlife", "coffee", "running", "dance", "comedy", "makeup", "skincare", "gaming", "music", "learnontiktok", "streetfood", "homedecor",
}

// emoji are added to titles. Each emoji has at least one character that needs four bytes in UTF-8.
var emoji = []string{"😂", "🔥", "🎉", "🧺", "🥞", "🐈", "🥁", "🌵", "🎨", "🏃", "🍜", "🛠", "🎧", "📚", "🏔", "🧶", "🤯", "💡", "🪴", "🙌🏽", "👩‍🍳"}

// songs are the title and the artist of each song that generated videos use.
var songs = [][2]string{
	{"Paper Lanterns", "Noa Vale"}, {"Slow Tide", "The Harbour Lights"}, {"Neon Laundry", "KITSU"}, {"Count Me In", "Rae Okafor"}, {"Midnight Tram", "Oskar & June"},
	{"Sugarcoat", "Lola Pines"}, {"Gravel Road", "Dusty Moreno"}, {"Hologram Heart", "VANTA"}, {"Kerosene", "Mila Storm"}, {"Bolo de Fubá", "Caio Prado"},
	{"Upside Downtown", "Brassline"}, {"Soft Reset", "Ada Quill"}, {"Winter Fruit", "Jun Arai"}, {"Tambourine Girl", "The Odd Socks"}, {"Afterglow (Sped Up)", "Nils Hart"},
	{"Ride or Tide", "Marlo"}, {"Blue Kitchen", "Ines Duarte"}, {"Echo Park 3AM", "Leon Wray"}, {"Static Bloom", "Fern & Wire"}, {"Monsoon", "Priya Anand"},
}

// bios are the profile texts of generated accounts.
var bios = []string{
	"Making small things every day", "Food, mostly noodles 🍜", "Dog person in a cat house", "New video every week", "Collabs: see link", "Learning in public", "Just here for the comments",
	"Two friends and a camera", "Slow living, fast edits", "Opinions are my cat's",
}
